package scenarios

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

// Yard is what scenarios about deployments are played with: replicas of the deployments service, and a cluster that honours effect keys
// or only says so.
type Yard struct {
	*Stage
	Pace Pace
	Keys simulator.Keys

	replicas []*harness.Service
}

// deploymentsRole is the argument of the binary.
const deploymentsRole = "deployments"

// How long a rollout takes, for scenarios that watch one, and for those that have many.
const (
	watched = 1500 * time.Millisecond
	usual   = 300 * time.Millisecond
	instant = time.Millisecond
)

// Yard opens the yard at a cluster whose rollouts take so long.
func (s *Stage) Yard(pace Pace, rolloutTime time.Duration) *Yard {
	s.Cluster(fmt.Sprintf("EINMAL_ROLLOUT_TIME=%s", rolloutTime))
	s.db.Service = deploymentsRole
	return &Yard{Stage: s, Pace: pace, Keys: simulator.Honour}
}

// EachClusterKeys plays a part at a cluster that honours effect keys and then at one that does not, which only its tokens and our asking before we send
// again then make up for. In each, something must really go wrong.
func (s *Stage) EachClusterKeys(pace Pace, rolloutTime time.Duration, play func(y *Yard) (effects int)) (effects int) {
	y := s.Yard(pace, rolloutTime)
	for _, y.Keys = range []simulator.Keys{simulator.Honour, simulator.Ignore} {
		s.begin(y.Keys)
		s.cluster.Can(simulator.Abilities{Keys: y.Keys, Lookup: true, Close: true})
		injected := s.injected()
		effects += play(y)
		s.Check(s.injected() > injected, "no fault happened, so nothing was shown")
		y.endReplicas()
		s.checkCluster()
		s.cluster.Disarm()
	}
	s.part = ""
	return effects
}

// Replica starts a replica of the deployments service.
func (y *Yard) Replica(settings ...string) *harness.Service {
	return y.ReplicaTo(y.cluster.URL(), settings...)
}

// ReplicaTo starts one that finds the cluster at another place.
func (y *Yard) ReplicaTo(cluster string, settings ...string) *harness.Service {
	service, err := y.lab.Serve(y.ctx, harness.Settings{Role: deploymentsRole, DatabaseURL: y.db.URL, Env: append([]string{
		"EINMAL_PROVIDER_URL=" + cluster,
		"EINMAL_FOLLOW_EVERY=20ms",
		fmt.Sprintf("EINMAL_PROVIDER_TIMEOUT=%s", y.Pace.Timeout),
		fmt.Sprintf("EINMAL_EFFECT_LEASE=%s", y.Pace.Lease),
		fmt.Sprintf("EINMAL_RECONCILE_EVERY=%s", y.Pace.Reconcile),
		fmt.Sprintf("EINMAL_KEY_WINDOW=%s", y.Pace.KeyWindow),
	}, settings...)})
	y.must(err)
	y.services = append(y.services, service)
	y.replicas = append(y.replicas, service)
	return service
}

// endReplicas lets the replicas of the part leave.
func (y *Yard) endReplicas() {
	for _, replica := range y.replicas {
		y.must(replica.Terminate())
	}
	y.replicas = nil
}

// Restart starts a replica that was killed.
func (y *Yard) Restart(replica *harness.Service) { y.must(replica.Start(y.ctx)) }
