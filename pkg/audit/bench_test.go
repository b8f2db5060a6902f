package audit_test

import (
	"testing"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
)

// manyEvents is what einmal audit verify is to take less than five seconds for.
const manyEvents = 100_000

func BenchmarkVerify(b *testing.B) {
	for _, kind := range []database.Kind{database.SQLite, database.Postgres} {
		b.Run(string(kind), func(b *testing.B) {
			s := newSealed(b, kind)
			for range manyEvents / 1000 {
				s.record(1000)
				s.seal()
			}
			trust := s.trust()
			for b.Loop() {
				report, err := audit.Verify(audit.Read(b.Context(), s.db, "tickets"), trust)
				if err != nil || report.Leaves != manyEvents || len(report.Findings) > 0 {
					b.Fatalf("%+v, %v", report, err)
				}
			}
		})
	}
}
