package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/outbox"
)

// auditDir is where the key and the checkpoints are of services that nobody tells otherwise.
const auditDir = "./data/audit"

// auditCmd is what can be done with the log of what happened.
type auditCmd struct {
	Verify  auditVerifyCmd  `cmd:"" help:"Prove that no event was changed, removed or added since it was sealed; exit 1 and name the first that was."`
	Export  auditExportCmd  `cmd:"" help:"Write the log to standard output, for einmal audit verify --file elsewhere."`
	Receipt auditReceiptCmd `cmd:"" help:"Prove the receipt of an operation, with public keys alone; exit 1 if it proves nothing."`
	Accept  auditAcceptCmd  `cmd:"" help:"Go on with a database that was set back: all that is open becomes unknown, and the checkpoint of what is forgotten is set aside."`
	Key     auditKeyCmd     `cmd:"" help:"Print the public keys whose checkpoints are believed, or make a new key."`
}

// proof names the log of one service and what is outside its database.
type proof struct {
	storage
	AuditDir string `env:"EINMAL_AUDIT_DIR" default:"${audit_dir}" placeholder:"DIR" help:"Where the public keys and the last checkpoint are."`
}

func (p proof) files() audit.Files { return audit.Files{Dir: p.AuditDir, Service: p.Service} }

// open opens the database, which must be there and migrated.
func (p proof) open(ctx context.Context) (*database.DB, error) {
	// Opening would make the file, and there is nothing to prove of an empty database.
	if path, embedded := strings.CutPrefix(p.url(), "sqlite:"); embedded {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no database: %w; set EINMAL_DATABASE_URL", err)
		}
	}
	db, err := database.Open(ctx, p.url(), database.Options{})
	if err != nil {
		return nil, err
	}
	if err := migrations.Complete(ctx, db, p.Service); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

type auditVerifyCmd struct {
	proof
	File       string `placeholder:"FILE" help:"An exported log in place of the database; - is standard input."`
	Keys       string `placeholder:"FILE" help:"Public keys that are believed, one a line; default audit.pub in EINMAL_AUDIT_DIR."`
	Checkpoint string `placeholder:"FILE" help:"The last checkpoint outside the database; default SERVICE.checkpoint in EINMAL_AUDIT_DIR, if it is there."`
}

func (a *auditVerifyCmd) Run(ctx context.Context, streams streams) error {
	trust, err := a.trust()
	if err != nil {
		return err
	}
	var report audit.Report
	if a.File != "" {
		file, err := input(a.File)
		if err != nil {
			return err
		}
		defer file.Close()
		report, err = audit.Verify(audit.ReadFile(file), trust)
		if err != nil {
			return err
		}
	} else {
		db, err := a.open(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		report, err = audit.Verify(audit.Read(ctx, db, a.Service), trust)
		if err != nil {
			return err
		}
	}
	return a.tell(streams.out, report)
}

// trust is what the log is held against.
func (a *auditVerifyCmd) trust() (trust audit.Trust, err error) {
	trust.Service = a.Service
	if trust.Keys, err = readKeys(cmp.Or(a.Keys, a.files().KeysFile())); err != nil {
		return trust, err
	}
	if a.Checkpoint == "" {
		trust.Outside, err = a.files().Checkpoint()
		return trust, err
	}
	text, err := os.ReadFile(a.Checkpoint)
	trust.Outside = string(text)
	return trust, err
}

// tell prints what was found; that is an error.
func (a *auditVerifyCmd) tell(out io.Writer, report audit.Report) error {
	first, bad := report.First()
	if !bad {
		fmt.Fprintf(out, "%s: all %d sealed events are as they were signed in %d checkpoints; %d wait to be sealed\n", a.Service, report.Leaves, report.Checkpoints, report.Pending)
		if !report.Outside {
			fmt.Fprintf(out, "There was no checkpoint from outside the database to hold it against: events that were cut off together with their checkpoints would not be missed.\n")
		}
		return nil
	}
	for _, f := range report.Findings {
		more := ""
		if f.More > 0 {
			more = fmt.Sprintf(" (and %d more)", f.More)
		}
		fmt.Fprintf(out, "%s: %s: %s%s\n", f.Kind, cmp.Or(f.EventID, "an event whose id is gone"), f.Detail, more)
	}
	return fmt.Errorf("the log of %s is not what was signed; the first event affected is %s (%s)", a.Service, cmp.Or(first.EventID, "one whose id is gone"), first.Kind)
}

type auditExportCmd struct{ proof }

func (a *auditExportCmd) Run(ctx context.Context, streams streams) error {
	db, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return audit.Write(streams.out, audit.Read(ctx, db, a.Service))
}

type auditReceiptCmd struct {
	File string `arg:"" placeholder:"FILE" help:"The answer of GET /v1/operations/{id}/receipt; - is standard input."`
	Keys string `required:"" placeholder:"FILE" help:"Public keys that are believed, one a line. The one in the receipt is not: whoever can write a receipt can write a key."`
}

func (a *auditReceiptCmd) Run(streams streams) error {
	keys, err := readKeys(a.Keys)
	if err != nil {
		return err
	}
	file, err := input(a.File)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	receipt, err := audit.ReadReceipt(text)
	if err != nil {
		return err
	}
	checkpoint, err := receipt.Verify(keys)
	if err != nil {
		return err
	}
	for i, e := range receipt.Events {
		fmt.Fprintf(streams.out, "%8d  %s  %-10s", receipt.LeafIndexes[i], e.At, e.Type)
		for _, member := range []struct{ name, value string }{
			{"run", e.AgentRun},
			{"by", e.Principal},
			{"key", e.KeyHash},
			{"fingerprint", string(e.Fingerprint)},
			{"effect", e.EffectKey},
			{"reference", e.Reference},
			{"became", string(e.To)},
		} {
			if member.value != "" {
				fmt.Fprintf(streams.out, "  %s %s", member.name, member.value)
			}
		}
		fmt.Fprintln(streams.out)
	}
	fmt.Fprintf(streams.out, "proven: these %d events of %s are in %s, as it was signed at %d events\n", len(receipt.Events), receipt.Events[0].OperationID, checkpoint.Origin, checkpoint.Size)
	return nil
}

type auditAcceptCmd struct{ proof }

func (a *auditAcceptCmd) Run(ctx context.Context, streams streams) error {
	db, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	sealer, err := audit.NewSealer(db, slog.Default(), a.Service, audit.Sealing{AuditDir: a.AuditDir})
	if err != nil {
		return err
	}
	events := audit.Open(db)
	defer events.Close()
	doubted := 0
	setAside, err := sealer.Accept(ctx, func(tx database.Tx) error {
		doubted, err = outbox.DoubtAll(tx, events.Record)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.out, "%s goes on from what is in its database. %d open effects are unknown now and are asked about. What was signed beyond it is kept in %s.\n", a.Service, doubted, setAside)
	return nil
}

type auditKeyCmd struct {
	AuditDir string `env:"EINMAL_AUDIT_DIR" default:"${audit_dir}" placeholder:"DIR" help:"Where the keys are."`
	KeyFile  string `env:"EINMAL_AUDIT_KEY_FILE" placeholder:"FILE" help:"The private key, if it is not audit.key in EINMAL_AUDIT_DIR."`
	Create   bool   `xor:"make" help:"Make a key where there is none."`
	Rotate   bool   `xor:"make" help:"Put a new key in place of the one that there is. What it has signed stays believed; services sign with the new one from their next batch on."`
}

func (a *auditKeyCmd) Run(streams streams) (err error) {
	files := audit.Files{Dir: a.AuditDir, KeyFile: a.KeyFile}
	switch {
	case a.Create:
		_, err = files.CreateKey(time.Now())
	case a.Rotate:
		_, err = files.RotateKey(time.Now())
	}
	if err != nil {
		return err
	}
	keys, err := readKeys(files.KeysFile())
	if err != nil {
		return err
	}
	for _, key := range keys {
		fmt.Fprintln(streams.out, key)
	}
	return nil
}

func readKeys(path string) (audit.Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the public keys: %w; einmal audit key prints those of a service's EINMAL_AUDIT_DIR", err)
	}
	keys, err := audit.ParseKeys(string(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the public keys: %s: %w", path, err)
	case len(keys) == 0:
		return nil, fmt.Errorf("read the public keys: there is none in %s", path)
	}
	return keys, nil
}

// input opens a file to be read, or standard input.
func input(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}
