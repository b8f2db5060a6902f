// Package notes_test is a file of somebody else's service, as docs/copying.md has it. The test of that page compiles and runs it in a
// copy of what the page says to take.
package notes_test

import (
	"path/filepath"
	"testing"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency/idemtest"
)

// contract:
func TestContract(t *testing.T) {
	idemtest.Exercise(t, func(t testing.TB) idemtest.Connect {
		url := "sqlite:" + filepath.Join(t.TempDir(), "notes.db") // or an empty database of your PostgreSQL
		connect := func(t testing.TB, options database.Options) *database.DB {
			db, err := database.Open(t.Context(), url, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}
		if err := migrations.Up(t.Context(), connect(t, database.Options{}), migrations.Shared); err != nil {
			t.Fatal(err)
		}
		return connect
	})
}

// :contract
