package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Copy is the state of a database at one time.
type Copy struct {
	name string // of a database on the same server; empty on SQLite
	path string // of a file
}

// Copy keeps the state of the database as it is. No service may have it open.
func (d *Database) Copy(ctx context.Context) (Copy, error) {
	if d.Path == "" {
		c := Copy{name: d.name + "_copy"}
		d.lab.mu.Lock()
		d.lab.databases = append(d.lab.databases, &Database{lab: d.lab, server: d.server, name: c.name, pool: d.pool}) // so that it is dropped, too
		d.lab.mu.Unlock()
		return c, d.server.CreateDatabase(ctx, c.name, d.name)
	}
	c := Copy{path: d.Path + ".copy"}
	pool, err := d.open()
	if err != nil {
		return c, fmt.Errorf("copy database: %w", err)
	}
	defer pool.Close()
	_, err = pool.ExecContext(ctx, "VACUUM INTO ?", c.path)
	return c, err
}

// SetBack puts the database back to the state of a copy, as a restore from a backup does. No service may have it open.
func (d *Database) SetBack(ctx context.Context, c Copy) error {
	if d.Path == "" {
		if err := d.server.DropDatabase(ctx, d.name); err != nil {
			return err
		}
		return d.server.CreateDatabase(ctx, d.name, c.name)
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		return fmt.Errorf("set database back: %w", err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(d.Path + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set database back: %w", err)
		}
	}
	return os.WriteFile(d.Path, text, 0o600)
}
