package database_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
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

func TestOpenSQLite(t *testing.T) {
	t.Run("makes the file, and a directory for it, for this user only", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		dbtest.Connect(t, "sqlite:"+filepath.Join(dir, "x.db"), database.Options{})
		for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, "x.db"): 0o600} {
			info, err := os.Stat(path)
			if err != nil || info.Mode() != want {
				t.Errorf("%s: mode %v, error %v, want %v", path, info.Mode(), err, want)
			}
		}
	})
	for name, path := range map[string]string{
		"no path": "", "a URL's authority": "//data/x.db", "a database in memory": ":memory:",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if _, err := database.Open(t.Context(), "sqlite:"+path, database.Options{}); err == nil || errors.Is(err, database.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("is unavailable where the file can't be made, and names it", func(t *testing.T) {
		taken := filepath.Join(t.TempDir(), "taken.db")
		if err := os.Mkdir(taken, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := database.Open(t.Context(), "sqlite:"+taken, database.Options{})
		if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), taken) {
			t.Fatalf("got %v", err)
		}
	})
}
