package scenarios

import "net/http"

var resolveWhilePaused = Scenario{
	Name:    "resolve_while_paused",
	Promise: "A person's word about a rollout whose sender is paused frees its environment only when the cluster has closed it, so what is sent late begins nothing.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(sooner, usual, func(y *Yard) int {
			door := y.ClosedDoor(y.cluster.Outside)
			sender := y.ReplicaTo(door.URL())
			r := y.Begin(sender, y.Plans())
			y.Is(sender, r, "running")
			y.Freeze(sender)
			y.cluster.Down(send, lookUp, shut)
			other := y.Replica()
			review := y.WithPerson(other, r)
			y.Problem("a yes that nothing has confirmed", y.Resolve(other, review, "succeeded"), http.StatusConflict, "operation-running")
			no := y.Resolve(other, review, "failed")
			y.Check(no.Status == http.StatusOK && no.Text("state") == "resolved", "a no: got %v, want the review resolved", no)
			newer := y.Plans()
			y.Locked(other, newer, r)

			y.cluster.Disarm()
			y.Reconcile(other, r) // by itself the cluster would be asked at growing intervals
			y.Is(other, r, "canceled")
			y.Done(other, newer)
			y.goOn(sender, door)
			y.Is(other, r, "canceled")
			found := y.cluster.Effects(r.EffectKey)
			y.Check(len(found) == 0, "the cluster has %v, of what a person has withdrawn", found)
			y.Live(other, newer)
			return 1
		})
	},
}
