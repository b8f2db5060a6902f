package scenarios

import "github.com/einmal/einmal/e2e/harness"

var queueKeepsOrder = Scenario{
	Name:    "queue_keeps_order",
	Promise: "Deployments that wait for an environment come out in the order in which they were accepted, also if the process that serves them is killed.",
	Injects: true,
	run: func(s *Stage) int {
		y := s.Yard(brisk, usual)
		replicas := []*harness.Service{y.Replica(), y.Replica()}
		const waiting = 8
		var all []*Release
		for i := range waiting {
			all = append(all, y.Begin(replicas[i%2], y.Plans(queued)))
		}
		env := y.Prod(replicas[0])
		y.Check(env.Lock != nil && len(env.Queue) > 0, "prod is %+v, want it locked and waited for", env)
		for i, d := range env.Queue {
			y.Check(d.DeploymentID == all[waiting-len(env.Queue)+i].ID, "place %d of the queue is not that of its arrival: %+v", i+1, env.Queue)
		}
		y.Is(replicas[0], all[1], "succeeded")
		y.Kill(replicas[1])
		y.Is(replicas[0], all[3], "succeeded")
		y.Kill(replicas[0])
		y.Restart(replicas[0])
		y.Restart(replicas[1])
		for _, r := range all {
			y.Succeeds(replicas[0], r)
		}
		for i, e := range y.cluster.Rollouts() {
			y.Check(e.EffectKey == all[i].EffectKey, "rollout %d is not that of deployment %d", i+1, i+1)
		}
		y.Live(replicas[1], all[waiting-1])
		return waiting
	},
}
