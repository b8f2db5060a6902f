package scenarios

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/pgserver"
	"github.com/einmal/einmal/services/simulator"
)

var replicaFiveMinutesAhead = Scenario{
	Name:    "replica_five_minutes_ahead",
	Promise: "Replicas whose clocks are five minutes ahead of the database's neither disturb a live lease nor take a key window for over.",
	Injects: true,
	Only:    database.Postgres, // SQLite's clock is that of the process
	run: func(s *Stage) int {
		const behind = 5 * time.Minute
		clock, err := faults.ClockBehind(behind)
		if err != nil {
			s.Skipf("%v", err)
		}
		server, err := s.lab.StartServer(s.ctx, pgserver.Options{Durable: true, Env: clock})
		if errors.Is(err, pgserver.ErrNoBinaries) {
			s.Skipf("%v", err)
		}
		s.must(err)
		s.db, err = s.lab.NewDatabaseAt(s.ctx, server)
		s.must(err)
		off := time.Now().Unix() - int64(s.Count("SELECT extract(epoch FROM clock_timestamp())::bigint"))
		s.Check(off > int64(behind.Seconds())-10, "the database's clock is behind by %d s only", off)
		s.Struck()
		s.recordServer(record.Struck, fmt.Sprintf("its clock is %d s behind", off))

		pace := patient
		pace.KeyWindow = behind / 5 // over since long, by the replicas' own clocks
		effects := s.EachAbility(everyAbility, pace, (*Part).underSkew)
		// All replicas here share one wrong clock, so they would agree by it as well. That they go by the database's shows in what they wrote.
		for _, column := range []string{"effects.created_at", "effects.updated_at", "attempts.started_at", "attempts.ended_at", "events.at", "tickets.created_at"} {
			table, _, _ := strings.Cut(column, ".")
			ahead := s.Count("SELECT count(*) FROM " + table + " WHERE " + column + " > clock_timestamp()")
			s.Check(ahead == 0, "%d times in %s are ahead of the database's clock", ahead, column)
		}
		return effects
	},
}

// underSkew lets two replicas work side by side, and looks whether one takes what the other is at.
func (p *Part) underSkew() (effects int) {
	replica, other := p.Replica(p.desk.URL()), p.Replica(p.desk.URL())
	p.desk.Arm(simulator.Misfortune{Operation: send, When: simulator.Before, Action: simulator.Delay, DelayMS: 500})
	slow := p.Mirror(replica)
	slow.least, slow.most = 1, 1
	effects = p.Succeeds(other, slow)
	for _, kind := range []string{lookUp, shut} {
		p.Check(p.desk.Calls(kind, slow.EffectKey) == 0, "the desk was asked by %s about a send that was under way", kind)
	}

	p.desk.NextSend(simulator.After, simulator.Reset)
	effects += p.Ends(other, p.Mirror(replica), Happened)
	p.desk.NextSend(simulator.Before, simulator.Reset)
	effects += p.Ends(other, p.Mirror(replica), CameToNought)
	p.desk.NextSendAnswered(simulator.Before, http.StatusTooManyRequests, 1)
	later := p.Mirror(replica)
	p.desk.AwaitFired(4)
	effects += p.Succeeds(other, later)
	const told = time.Second // by the desk, with 429
	took := p.Text(`SELECT extract(epoch FROM max(started_at) - min(ended_at))::text FROM attempts WHERE operation_id = $1`, later.Operation)
	var seconds float64
	_, err := fmt.Sscan(took, &seconds)
	p.must(err)
	p.Check(seconds >= told.Seconds() && seconds < 10*told.Seconds(), "it was sent again after %s s, want the second that the desk asked for and little more", took)
	return effects
}
