package scenarios

import (
	"fmt"
	"sync"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
)

var alertmanagerPair = Scenario{
	Name:    "alertmanager_pair",
	Promise: "Two Alertmanagers of a cluster tell two replicas of the same alerts, at once and after failures: each alert has one ticket.",
	Injects: true,
	run: func(s *Stage) int {
		replicas := []*harness.Service{s.Serve(""), s.Serve("")}
		roads := []*faults.HTTPProxy{s.HTTPProxy(replicas[0]), s.HTTPProxy(replicas[1])}
		monitoring := s.Monitoring("alertname", roads[0].URL(), roads[1].URL())

		const n = 20
		var alerts, ended []harness.Alert
		for i := range n {
			alerts = append(alerts, newAlert("DiskFull", fmt.Sprintf("db%d", i)))
		}
		// Neither hears of the other's notification before both have sent theirs. Then they race, from alert to alert.
		for _, road := range roads {
			road.Next(faults.HoldRequest)
		}
		monitoring.Tell("all fire", alerts...)
		s.Await("both have sent the same", func() bool { return roads[0].Held() == 1 && roads[1].Held() == 1 })
		var race sync.WaitGroup
		for _, road := range roads {
			road.Next(faults.LoseAnswer, faults.LoseRequest)
			race.Go(road.Deliver)
		}
		race.Wait()
		monitoring.AwaitEvents(n, 0)

		s.Kill(replicas[0])
		for i, alert := range alerts {
			if i%2 == 0 {
				ended = append(ended, over(alert))
			}
		}
		monitoring.Tell("half of them are over", ended...)
		s.must(replicas[0].Start(s.ctx))
		monitoring.AwaitEvents(n, len(ended))
		monitoring.AwaitTaken(4)

		events, sent := monitoring.CheckEvents(), len(monitoring.receivers[0].Notifications())+len(monitoring.receivers[1].Notifications())
		s.Notef("both told of %d alerts at once, in %d notifications: one ticket each, %d resolved", events, sent, len(ended))
		return n
	},
}
