package scenarios

import "github.com/einmal/einmal/e2e/faults"

var alertmanagerRepeats = Scenario{
	Name:    "alertmanager_repeats",
	Promise: "Alertmanager repeats what it is not sure of, and what goes on: an alert has one ticket all the same, and is resolved once.",
	Injects: true,
	run: func(s *Stage) int {
		service := s.Serve("")
		lossy := s.HTTPProxy(service)
		monitoring := s.Monitoring("alertname", lossy.URL())
		first, second, third := newAlert("DiskFull", "db1"), newAlert("DiskFull", "db2"), newAlert("DiskFull", "db3")

		lossy.Next(faults.LoseRequest, faults.LoseAnswer) // a receiver that fails before it has done anything, and one that fails after
		monitoring.Tell("two fire", first, second)
		monitoring.AwaitEvents(2, 0)
		monitoring.AwaitTaken(3)

		s.Kill(service)
		monitoring.Tell("a third, of which nobody takes notice", third)
		s.must(service.Start(s.ctx))
		monitoring.AwaitEvents(3, 0)

		// A receiver that hangs: the notification is given up, sent again, and done. Then the first one arrives after all.
		lossy.Next(faults.HoldRequest)
		s.Await("a notification hangs", func() bool { return lossy.Held() == 1 })
		monitoring.Tell("one of them is over", over(first))
		monitoring.AwaitEvents(3, 1)
		monitoring.AwaitTaken(1)
		lossy.Deliver()

		monitoring.Tell("all are over", over(second), over(third))
		monitoring.AwaitEvents(3, 3)
		events, repeats := monitoring.CheckEvents(), monitoring.Repeats()
		s.Check(repeats > 0, "no notification was repeated, so nothing was shown")
		s.Notef("%d notifications, %d of them byte for byte like an earlier one: %d tickets, all resolved once", len(monitoring.receivers[0].Notifications()), repeats, events)
		return 3
	},
}
