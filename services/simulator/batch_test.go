package simulator_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

func TestBatches(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		if err := migrations.Up(t.Context(), db, simulator.Name); err != nil {
			t.Fatal(err)
		}
		do, quit := simulator.NewBatches(db)
		effects := func() (ids []string) {
			if err := db.Read(t.Context()).Model(&simulator.Effect{}).Order("id").Pluck("id", &ids).Error; err != nil {
				t.Fatal(err)
			}
			return ids
		}

		t.Run("work that fails undoes itself and nothing else", func(t *testing.T) {
			broken := errors.New("broken")
			began, goOn := make(chan bool), make(chan bool)
			first := make(chan error, 1)
			go func() {
				first <- do(func(database.Tx) error {
					began <- true
					<-goOn
					return nil
				})
			}()
			<-began // what follows waits, and then is one batch
			results := make([]chan error, 8)
			for i := range results {
				results[i] = make(chan error, 1)
				go func() {
					results[i] <- do(func(tx database.Tx) error {
						if err := simulator.RecordEffect(tx, simulator.Effect{Target: "desk", ID: fmt.Sprint(i), At: tx.Now}); err != nil {
							return err
						}
						if i == 5 {
							return broken
						}
						return nil
					})
				}()
			}
			eventually(t, "all wait", func() bool { return waiting() == 1+len(results) })
			goOn <- true
			if err := <-first; err != nil {
				t.Error(err)
			}
			for i, result := range results {
				if err := <-result; errors.Is(err, broken) != (i == 5) || err != nil && i != 5 {
					t.Errorf("work %d: %v", i, err)
				}
			}
			if got := fmt.Sprint(effects()); got != "[0 1 2 3 4 6 7]" {
				t.Errorf("effects %s", got)
			}
		})

		t.Run("none is begun after the end", func(t *testing.T) {
			quit()
			eventually(t, "it ends", func() bool {
				return do(func(database.Tx) error { return nil }) != nil
			})
		})
	})
}

// waiting is how many goroutines wait for their work to be done.
func waiting() int { return countStacks("(*batches).do") }
