package simulator_test

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestSendsOfOneKeyAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		answers := make(chan answer, 64)
		for range cap(answers) {
			go func() { answers <- w.send("k") }()
		}
		created, references := 0, map[string]bool{}
		for range cap(answers) {
			a := <-answers
			switch a.status {
			case 201:
				references[a.member("reference")] = true
				if !a.replayed() {
					created++
				}
			default:
				check(t, a, 409, "in_progress")
			}
		}
		if created != 1 || len(references) != 1 {
			t.Errorf("%d sends created a ticket, there are %d references", created, len(references))
		}
		w.checkEffects(1)
		if got := len(w.calls()); got != cap(answers) {
			t.Errorf("%d calls", got)
		}
	})
}

// A send is in the ledger before a close answers, or never.
func TestCloseRacesSends(t *testing.T) {
	const rounds = 100 // for each way with keys
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, keys := range []string{"honour", "ignore"} {
			t.Run("keys: "+keys, func(t *testing.T) {
				w := start(t, kind)
				w.abilities(`{"target":"desk","keys":"` + keys + `","lookup":true,"close":true}`)
				told := make([]int, rounds)
				var group errgroup.Group
				group.SetLimit(8)
				for round := range rounds {
					group.Go(func() error {
						told[round] = w.race(fmt.Sprintf("k%d", round))
						return nil
					})
				}
				_ = group.Wait() // races report what is wrong themselves

				real := map[string]int{}
				for _, e := range w.ledger() {
					real[e.EffectKey]++
				}
				first := 0
				for round, effects := range told {
					if key := fmt.Sprintf("k%d", round); effects != real[key] || keys == "honour" && effects > 1 {
						t.Errorf("round %d: the answers tell of %d effects, the ledger of %d", round, effects, real[key])
					}
					first += min(effects, 1)
				}
				t.Logf("in %d of %d rounds a send was first", first, rounds)
			})
		}
	})
}

// race closes a key while two sends of it are on their way, sends again after that, and returns how many sends had an effect.
func (w *world) race(key string) (effects int) {
	var sends [2]answer
	var closed answer
	var group sync.WaitGroup
	for i := range sends {
		group.Go(func() { sends[i] = w.send(key) })
	}
	group.Go(func() { closed = w.close(key) })
	group.Wait()
	for _, a := range append(sends[:], w.send(key)) {
		switch {
		case a.status == 201 && !a.replayed():
			effects++
		case a.status == 201, a.member("code") == "closed", a.member("code") == "in_progress":
		default:
			w.t.Errorf("%s: send %v", key, a)
		}
	}
	if closed.status != 200 || closed.member("happened") != fmt.Sprint(effects > 0) {
		w.t.Errorf("%s: %d sends had an effect, close says %v", key, effects, closed)
	}
	return effects
}
