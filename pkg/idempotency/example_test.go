package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// One key is one operation: a retry gets the answer of the attempt that was executed.
func ExampleExecutor_Do() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	for range 3 {
		result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), addNote)
		fmt.Println(result.Outcome, result.Answer.Status, string(result.Answer.Body), err)
	}
	fmt.Println(notes(db), "note")
	// Output:
	// executed 201 {"text":"Disk full"} <nil>
	// replayed 201 {"text":"Disk full"} <nil>
	// replayed 201 {"text":"Disk full"} <nil>
	// 1 note
}

// Attempts at once wait for the first one, and get its answer from the database.
func ExampleExecutor_Do_atOnce() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{WaitBudget: time.Minute})
	var outcomes sync.Map
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), addNote)
			outcomes.Store(i, fmt.Sprint(result.Outcome, err))
		})
	}
	all.Wait()
	executed, replayed := 0, 0
	for _, outcome := range outcomes.Range {
		switch outcome {
		case "executed<nil>":
			executed++
		case "replayed<nil>":
			replayed++
		}
	}
	fmt.Println(executed, "executed,", replayed, "replayed,", notes(db), "note")
	// Output: 1 executed, 63 replayed, 1 note
}

// Another command under a used key is a fault of its caller: it is neither executed nor answered with what the first one got.
func ExampleExecutor_Do_conflict() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	for _, text := range []string{"Disk full", "Disk empty"} {
		result, err := x.Do(context.Background(), note("8e03978e", text), addNote)
		fmt.Println(result.Outcome, err)
	}
	fmt.Println(notes(db), "note")
	// Output:
	// executed <nil>
	// conflict <nil>
	// 1 note
}

// An attempt that fails, or panics, or whose process dies, leaves nothing: the same key may be tried again.
func ExampleExecutor_Do_failure() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	_, err := x.Do(context.Background(), note("8e03978e", "Disk full"), func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		if _, err := addNote(tx, op); err != nil {
			return idempotency.Answer{}, err
		}
		return idempotency.Answer{}, errors.New("something else went wrong")
	})
	fmt.Println(err, "-", notes(db), "notes")
	result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), addNote)
	fmt.Println(result.Outcome, err, "-", notes(db), "note")
	// Output:
	// something else went wrong - 0 notes
	// executed <nil> - 1 note
}

// After its retention an answer is gone, and the key is known still: nothing runs twice because time has passed.
func ExampleExecutor_Do_expired() {
	now := time.Now()
	db, remove := notebook(database.Options{Clock: func() time.Time { return now }})
	defer remove()
	x := idempotency.New(db, idempotency.Options{ResponseRetention: 30 * 24 * time.Hour})
	for _, days := range []int{0, 30, 31} {
		now = now.Add(time.Duration(days) * 24 * time.Hour)
		result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), addNote)
		fmt.Println(result.Outcome, err)
	}
	// Output:
	// executed <nil>
	// replayed <nil>
	// expired <nil>
}

// The business may say no: for ever, which is stored and replayed, or for now, which leaves the key free.
func ExampleRefusal() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	refuse := func(final bool) idempotency.Apply {
		return func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{}, &idempotency.Refusal{Final: final, Answer: idempotency.Answer{State: idempotency.Failed, Status: 409, Body: []byte("no")}}
		}
	}
	for _, final := range []bool{false, true} {
		key := idempotency.Key(fmt.Sprint("final-", final))
		first, _ := x.Do(context.Background(), note(key, "Disk full"), refuse(final))
		second, _ := x.Do(context.Background(), note(key, "Disk full"), addNote)
		fmt.Printf("%s %s, then %s %s\n", first.Outcome, first.Answer.Body, second.Outcome, second.Answer.Body)
	}
	// Output:
	// refused no, then executed {"text":"Disk full"}
	// refused no, then replayed no
}

// Work with an effect outside the database is accepted, and settled when it is known what happened.
func ExampleExecutor_Settle() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	accept := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		return idempotency.Answer{State: idempotency.Queued}, nil
	}
	var op idempotency.Operation
	for range 2 {
		result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), accept)
		fmt.Println(result.Outcome, err)
		op = result.Operation
	}
	for range 2 { // one of any number of settlers
		err := db.InTx(context.Background(), func(tx database.Tx) error {
			return x.Settle(tx, op, idempotency.Queued, idempotency.Answer{State: idempotency.Succeeded, Status: 200, Body: []byte("done")})
		})
		fmt.Println("settled:", err == nil, "- changed meanwhile:", errors.Is(err, idempotency.ErrStateChanged))
	}
	result, err := x.Do(context.Background(), note("8e03978e", "Disk full"), accept)
	fmt.Println(result.Outcome, string(result.Answer.Body), err)
	// Output:
	// accepted <nil>
	// in_progress <nil>
	// settled: true - changed meanwhile: false
	// settled: false - changed meanwhile: true
	// replayed done <nil>
}

// A following operation is claimed by the transaction of the one that it follows: both exist, or neither.
func ExampleExecutor_Claim() {
	db, remove := notebook(database.Options{})
	defer remove()
	x := idempotency.New(db, idempotency.Options{})
	_, err := x.Do(context.Background(), note("8e03978e", "Disk full"), func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		following := note("mirror:8e03978e", "Disk full")
		_, claimed, err := x.Claim(tx, following, idempotency.Answer{State: idempotency.Queued})
		if err != nil {
			return idempotency.Answer{}, err
		}
		fmt.Println("claimed:", claimed)
		return addNote(tx, op)
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := x.Do(context.Background(), note("mirror:8e03978e", "Disk full"), addNote)
	fmt.Println(result.Outcome, result.Operation.State, err)
	// Output:
	// claimed: true
	// in_progress queued <nil>
}

// Both spellings of the header name one key.
func ExampleParseKey() {
	for _, line := range []string{`8e03978e-40d5`, `"8e03978e-40d5"`, `a, b`} {
		key, err := idempotency.ParseKey([]string{line})
		fmt.Println(key, err)
	}
	// Output:
	// 8e03978e-40d5 <nil>
	// 8e03978e-40d5 <nil>
	//  idempotency key invalid: an unquoted key contains no quotation mark, backslash or comma; send it as a quoted string
}

// What a command means is hashed, however it was spelled.
func ExampleCommand_Fingerprint() {
	command := idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/notes", Body: map[string]any{"text": "Disk full", "priority": "high"}}
	canonical, _ := command.Canonical()
	fingerprint, _ := command.Fingerprint()
	fmt.Println(string(canonical))
	fmt.Println(fingerprint)
	// Output:
	// {"account":"acme","command":{"priority":"high","text":"Disk full"},"method":"POST","path":"/v1/notes","v":"v1"}
	// v1:b9f412cde619f6531f4099a824cdaa739dd86dad747e4c34b7e522f7170e08b1
}

// note is an attempt to add a note.
func note(key idempotency.Key, text string) idempotency.Request {
	return idempotency.Request{Key: key, Type: "note.create", Principal: "somebody", Command: idempotency.Command{
		Account: "acme", Method: "POST", Path: "/v1/notes", Body: map[string]any{"text": text},
	}}
}

// addNote adds it, in the transaction that claimed the operation.
func addNote(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
	id := idempotency.NewID("note", tx.Now)
	if err := tx.Exec("INSERT INTO notes (account_id, id, text) VALUES (?, ?, 'Disk full')", op.AccountID, id).Error; err != nil {
		return idempotency.Answer{}, err
	}
	return idempotency.Answer{
		State: idempotency.Succeeded, Status: 201, Location: "/v1/notes/" + id, Body: []byte(`{"text":"Disk full"}`),
		Resource: idempotency.Resource{Type: "note", ID: id, Href: "/v1/notes/" + id},
	}, nil
}

// notebook is a database of notes in a directory that remove removes.
func notebook(options database.Options) (db *database.DB, remove func()) {
	dir, err := os.MkdirTemp("", "einmal-example-")
	if err != nil {
		log.Fatal(err)
	}
	db, err = database.Open(context.Background(), "sqlite:"+filepath.Join(dir, "notes.db"), options)
	if err != nil {
		log.Fatal(err)
	}
	if err := migrations.Up(context.Background(), db, "tickets"); err != nil {
		log.Fatal(err)
	}
	if err := db.Read(context.Background()).Exec("CREATE TABLE notes (account_id text, id text, text text, PRIMARY KEY (account_id, id))").Error; err != nil {
		log.Fatal(err)
	}
	return db, func() {
		db.Close()
		os.RemoveAll(dir)
	}
}

func notes(db *database.DB) (n int) {
	if err := db.Read(context.Background()).Raw("SELECT count(*) FROM notes").Scan(&n).Error; err != nil {
		log.Fatal(err)
	}
	return n
}
