package idempotency_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/idempotency"
)

func TestNewID(t *testing.T) {
	at := time.Date(2026, 5, 6, 7, 8, 9, 123_456_000, time.UTC)

	t.Run("is a prefix and a UUIDv7 of the given time", func(t *testing.T) {
		prefix, text, _ := strings.Cut(idempotency.NewID("op", at), "_")
		id, err := uuid.Parse(text)
		if err != nil || prefix != "op" || text != id.String() {
			t.Fatalf("%s_%s: %v", prefix, text, err)
		}
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			t.Errorf("version %d, variant %v", id.Version(), id.Variant())
		}
		var milli int64
		for _, b := range id[:6] {
			milli = milli<<8 | int64(b)
		}
		if milli != at.UnixMilli() {
			t.Errorf("its time is %d, want %d", milli, at.UnixMilli())
		}
	})
	t.Run("sorts by its time, microsecond by microsecond", func(t *testing.T) {
		before := ""
		for i := range 5000 { // over the ends of five milliseconds
			id := idempotency.NewID("op", at.Add(time.Duration(i)*time.Microsecond))
			if id <= before {
				t.Fatalf("%s after %s", id, before)
			}
			before = id
		}
	})
	t.Run("sorts by its time at the ends of a millisecond, whatever the zone", func(t *testing.T) {
		zone := time.FixedZone("", 5*3600)
		milli := at.Truncate(time.Millisecond)
		times := []time.Time{milli, milli.Add(time.Microsecond).In(zone), milli.Add(999 * time.Microsecond), milli.Add(time.Millisecond).In(zone)}
		var ids []string
		for _, at := range times {
			ids = append(ids, idempotency.NewID("op", at))
		}
		if !slices.IsSorted(ids) {
			t.Error(ids)
		}
	})
	t.Run("is new every time, even at one time", func(t *testing.T) {
		seen := map[string]bool{}
		for range 10_000 {
			id := idempotency.NewID("op", at)
			if seen[id] {
				t.Fatalf("%s twice", id)
			}
			seen[id] = true
		}
	})
}
