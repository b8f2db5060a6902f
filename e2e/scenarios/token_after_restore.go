package scenarios

var tokenAfterRestore = Scenario{
	Name:    "token_after_restore",
	Promise: "A database that was set back and has forgotten which tokens it drew learns them from the cluster, and goes on above them.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, usual, func(y *Yard) int {
			replica := y.Replica()
			for range 3 {
				y.Done(replica, y.Plans())
			}
			y.must(y.db.Change(y.ctx, "UPDATE environments SET token = 0, floor = 0 WHERE account_id = 'acme' AND name = 'prod'"))
			y.Struck()
			r := y.Done(replica, y.Plans())
			y.Check(y.Count("SELECT count(*) FROM attempts WHERE operation_id = $1 AND outcome = 'not_sent' AND error LIKE 'below floor %'", r.Operation) == 1,
				"the cluster has not refused the first token")
			y.Live(replica, r)
			return 4
		})
	},
}
