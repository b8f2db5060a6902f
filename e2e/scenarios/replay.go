package scenarios

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// recordings are the notifications that real Alertmanagers have sent, a file for each scenario. They are made by
//
//	go test ./e2e/scenarios -run TestRecordNotifications -record
//
//go:embed testdata/alertmanager/*.json
var recordings embed.FS

// recording is what each Alertmanager of a scenario has sent in each of its steps, in this order and byte for byte.
type recording map[string][][]string

// recordingOf reads the recording of a scenario.
func recordingOf(scenario string) (r recording, err error) {
	text, err := recordings.ReadFile("testdata/alertmanager/" + scenario + ".json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// replayed does what an Alertmanager would: it sends the notifications of a step one after another, each until it is taken, and the last of them
// as a reminder for ever.
type replayed struct {
	stage  *Stage
	sender int // which of the recorded ones this is
	record recording
	said   chan []string
}

// replay starts the replay of one Alertmanager's notifications, which lasts as long as the scenario.
func (s *Stage) replay(url string, sender int) replayed {
	record, err := recordingOf(s.scenario)
	s.must(err)
	r := replayed{stage: s, sender: sender, record: record, said: make(chan []string)}
	ctx, cancel := context.WithCancel(s.ctx)
	s.closers = append(s.closers, func() error { cancel(); return nil })
	go r.run(ctx, url)
	return r
}

func (r replayed) tell(step string, _ []harness.Alert) error {
	r.said <- r.record[step][r.sender]
	return nil
}

const (
	// sendAgain is Alertmanager's first pause after a notification that failed.
	sendAgain = 500 * time.Millisecond

	// givesUp is how long Alertmanager waits for an answer where its group_interval is shorter.
	givesUp = 10 * time.Second
)

func (r replayed) run(ctx context.Context, url string) {
	var left []string
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case said := <-r.said:
			left = append(left, said...)
			next.Reset(0)
		case <-next.C:
			if len(left) == 0 {
				continue
			}
			sending, cancel := context.WithTimeout(ctx, givesUp)
			answer := harness.Do(sending, harness.Call{Base: url, Method: http.MethodPost, Path: alertmanagerHook, Token: agent, Body: left[0]})
			cancel()
			switch taken := answer.Err == nil && answer.Status == http.StatusOK; {
			case taken && len(left) > 1:
				left = left[1:]
				next.Reset(0)
			case taken:
				next.Reset(reminder)
			default:
				next.Reset(sendAgain)
			}
		}
	}
}

// recording is what the Alertmanagers of a scenario have sent. Of notifications that are the same as the one before, two are kept: the rest are more of
// the same.
func (m *Monitoring) recording() recording {
	r := recording{}
	for i, at := range m.steps {
		for sender, receiver := range m.receivers {
			all := receiver.Notifications()
			until := len(all)
			if i+1 < len(m.steps) {
				until = m.steps[i+1].before[sender]
			}
			bodies := []string{}
			for _, n := range all[at.before[sender]:until] {
				if k := len(bodies); k < 2 || bodies[k-1] != string(n.Body) || bodies[k-2] != string(n.Body) {
					bodies = append(bodies, string(n.Body))
				}
			}
			r[at.name] = append(r[at.name], bodies)
		}
	}
	return r
}
