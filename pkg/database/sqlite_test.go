package database_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/einmal/einmal/pkg/database"
)

func TestSQLitePaths(t *testing.T) {
	for _, name := range []string{
		"plain.db", "with space.db", "100%.db", "%20.db", "what?.db", "a?b=c&d=e.db", "sharp#one.db", "semi;colon.db", "plus+and&.db",
		"quote'\"`.db", "back\\slash.db", "grüße-日本.db", "colon:.db", "new/directories/of/it.db",
	} {
		t.Run(name+" is the file that it says", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d") + "/" + name
			db, err := database.Open(t.Context(), "sqlite:"+path, database.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			exec(t, db, "CREATE TABLE t (x)")
			if info, err := os.Stat(path); err != nil || info.Size() == 0 && !exists(path+"-wal") {
				t.Fatalf("no database there: %v", err)
			}
			var mode string
			if err := db.Read(t.Context()).Raw("PRAGMA journal_mode").Scan(&mode).Error; err != nil || mode != "wal" {
				t.Errorf("journal mode %q, %v: the settings after the path got lost", mode, err)
			}
		})
	}
	t.Run("a relative one is relative to where we are", func(t *testing.T) {
		t.Chdir(t.TempDir())
		db, err := database.Open(t.Context(), "sqlite:./data/tickets.db", database.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if !exists("data/tickets.db") {
			t.Error("no file there")
		}
	})
	t.Run("none is an error", func(t *testing.T) {
		if db, err := database.Open(t.Context(), "sqlite:", database.Options{}); err == nil {
			db.Close()
			t.Error("opened")
		}
	})
	t.Run("one that can't be written is unavailable, not a hang", func(t *testing.T) {
		path := t.TempDir() // a directory
		if db, err := database.Open(t.Context(), "sqlite:"+path, database.Options{}); err == nil {
			db.Close()
			t.Error("opened")
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
