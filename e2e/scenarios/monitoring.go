package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

// reminder is how often an Alertmanager looks at a group and reminds of it. In earnest it is minutes and hours.
const reminder = 200 * time.Millisecond

// Monitoring tells services of alerts: real Alertmanagers do or, on a machine without the program, what real ones have sent in this very scenario
// is sent again (replay.go).
type Monitoring struct {
	stage     *Stage
	senders   []sender
	receivers []*harness.Receiver // what each sends passes through one
	steps     []step
}

// sender tells a receiver of alerts: until it is told something else, again and again.
type sender interface {
	tell(step string, alerts []harness.Alert) error
}

// step is one change of what there is to tell.
type step struct {
	name   string
	before []int // how many notifications each receiver had until then
}

// Monitoring starts an Alertmanager in front of each target. Several are a cluster. Alerts are grouped by one label.
func (s *Stage) Monitoring(groupBy string, targets ...string) *Monitoring {
	s.monitoring = &Monitoring{stage: s}
	var first *harness.Alertmanager
	for i, target := range targets {
		receiver, err := harness.NewReceiver(target)
		s.must(err)
		s.closers = append(s.closers, receiver.Close)
		s.monitoring.receivers = append(s.monitoring.receivers, receiver)
		started, err := s.lab.Alertmanager(s.ctx, harness.AlertmanagerSettings{
			Receiver: receiver.URL() + alertmanagerHook, Token: agent, GroupBy: groupBy, Peer: first, Interval: reminder,
		})
		if errors.Is(err, harness.ErrNoAlertmanager) {
			if i == 0 {
				s.Notef("without prometheus-alertmanager, which is not installed: what one has sent before is sent again")
			}
			s.monitoring.senders = append(s.monitoring.senders, s.replay(receiver.URL(), i))
			continue
		}
		s.must(err)
		receiver.Record(record.From(s.ctx), started.Address())
		if first == nil {
			first = started
		}
		s.monitoring.senders = append(s.monitoring.senders, alertmanager{s, started})
	}
	return s.monitoring
}

// alertmanagerHook is what Alertmanager calls.
const alertmanagerHook = "/v1/hooks/alertmanager"

// alertmanager is a real one.
type alertmanager struct {
	stage   *Stage
	process *harness.Alertmanager
}

func (a alertmanager) tell(_ string, alerts []harness.Alert) error {
	return a.process.Tell(a.stage.ctx, alerts...)
}

// Tell tells every Alertmanager of alerts, as Prometheus does. The step has a name for those that only repeat what was sent.
func (m *Monitoring) Tell(name string, alerts ...harness.Alert) {
	at := step{name: name}
	for _, receiver := range m.receivers {
		at.before = append(at.before, len(receiver.Notifications()))
	}
	m.steps = append(m.steps, at)
	for _, sender := range m.senders {
		m.stage.must(sender.tell(name, alerts))
	}
}

// newAlert is an alert that fires from now on.
func newAlert(name, instance string) harness.Alert {
	return harness.Alert{
		Labels:      map[string]string{"alertname": name, "instance": instance, "project": "ops"},
		Annotations: map[string]string{"summary": name + " on " + instance},
		StartsAt:    time.Now(),
	}
}

// over is the alert when it has ended.
func over(a harness.Alert) harness.Alert {
	a.EndsAt = time.Now()
	return a
}

// Notified is one alert in a notification.
type Notified struct {
	Fingerprint string
	StartsAt    string
	Status      string
}

// Event is what the alert's ticket is about.
func (n Notified) Event() string { return n.Fingerprint + "@" + n.StartsAt }

// alertsIn are the alerts of one notification.
func (s *Stage) alertsIn(body []byte) []Notified {
	var read struct{ Alerts []Notified }
	s.must(json.Unmarshal(body, &read))
	return read.Alerts
}

// Taken are the notifications that were answered 200.
func (m *Monitoring) Taken() (taken []harness.Notification) {
	for _, receiver := range m.receivers {
		for _, n := range receiver.Notifications() {
			if n.Status == 200 {
				taken = append(taken, n)
			}
		}
	}
	return taken
}

// AwaitTaken waits until so many more notifications were answered 200.
func (m *Monitoring) AwaitTaken(n int) {
	had := len(m.Taken())
	m.stage.Await(fmt.Sprintf("%d more notifications are taken", n), func() bool { return len(m.Taken()) >= had+n })
}

// Events are what was told of, by whatever notification, with the status that its ticket must have come to.
func (m *Monitoring) Events() map[string]string {
	events := map[string]string{}
	for _, receiver := range m.receivers {
		for _, n := range receiver.Notifications() {
			for _, alert := range m.stage.alertsIn(n.Body) {
				if events[alert.Event()] == "" {
					events[alert.Event()] = "open"
				}
				if alert.Status == "resolved" {
					events[alert.Event()] = "resolved"
				}
			}
		}
	}
	return events
}

// Repeats is how many notifications were byte for byte like an earlier one.
func (m *Monitoring) Repeats() (n int) {
	seen := map[string]bool{}
	for _, receiver := range m.receivers {
		for _, notification := range receiver.Notifications() {
			if seen[string(notification.Body)] {
				n++
			}
			seen[string(notification.Body)] = true
		}
	}
	return n
}

// AwaitEvents waits until there are so many tickets of alerts, so many of them resolved.
func (m *Monitoring) AwaitEvents(tickets, resolved int) {
	m.stage.Await(fmt.Sprintf("there are %d tickets, %d of them resolved", tickets, resolved), func() bool {
		return m.stage.Count("SELECT count(*) FROM tickets") >= tickets && m.stage.Count("SELECT count(*) FROM tickets WHERE status = 'resolved'") >= resolved
	})
}

// CheckEvents ends the scenario unless each event that was told of comes to have one ticket, in the status that it has come to, by one operation for each
// thing that was said of it. It returns how many events there are. A service may be heard of here a moment after what it has done is seen.
func (m *Monitoring) CheckEvents() int {
	m.stage.Await("each alert that was told of has one ticket, as it was told of, and one operation for each thing that was said", m.told)
	return len(m.Events())
}

func (m *Monitoring) told() bool {
	said := 0
	for event, status := range m.Events() {
		if said++; status == "resolved" {
			said++
		}
		if m.stage.Count("SELECT count(*) FROM tickets WHERE source_event_id = $1", event) != 1 ||
			m.stage.Count("SELECT count(*) FROM tickets WHERE source_event_id = $1 AND status = $2", event, status) != 1 {
			return false
		}
	}
	return m.stage.Count("SELECT count(*) FROM operations WHERE idempotency_key LIKE 'am:%'") == said
}
