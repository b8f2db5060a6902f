package idempotency_test

import (
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency/idemtest"
)

func TestMain(m *testing.M) {
	// As on a machine whose zone is not UTC: what is stored and replayed must not depend on it.
	time.Local = time.FixedZone("elsewhere", 5*3600+1800)
	dbtest.Main(m)
}

func TestContract(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) { idemtest.Exercise(t, fresh(kind)) })
}

// fresh makes databases of a kind for the suite.
func fresh(kind database.Kind) idemtest.Fresh {
	return func(t testing.TB) idemtest.Connect {
		url := dbtest.URL(t, kind)
		return func(t testing.TB, options database.Options) *database.DB { return dbtest.Connect(t, url, options) }
	}
}

func TestModel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) { idemtest.Model(t, fresh(kind), nil) })
}
