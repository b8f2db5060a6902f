package scenarios

var killedMidRolloutResumes = Scenario{
	Name:    "killed_mid_rollout_resumes",
	Promise: "A process that is killed while a rollout goes on takes it up again after its restart, or another replica does, and begins nothing twice.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachClusterKeys(brisk, watched, func(y *Yard) int {
			replica := y.Replica()
			r := y.Begin(replica, y.Plans())
			y.cluster.AwaitRollout(r.EffectKey)
			y.Kill(replica)
			y.Restart(replica)
			y.Is(replica, r, "running")
			y.Succeeds(replica, r)

			taken := y.Begin(replica, y.Plans())
			y.cluster.AwaitRollout(taken.EffectKey)
			other := y.Replica()
			y.Kill(replica)
			y.Succeeds(other, taken)
			y.Done(other, y.Plans())
			y.Restart(replica)
			return 3
		})
	},
}
