package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/child"
)

// ErrNoAlertmanager means that Prometheus Alertmanager is not installed here.
var ErrNoAlertmanager = errors.New("prometheus-alertmanager is not installed")

// AlertmanagerSettings of one process of the real Prometheus Alertmanager.
type AlertmanagerSettings struct {
	Receiver string        // the URL that it sends notifications to
	Token    string        // with this bearer token
	GroupBy  string        // the label whose values make the groups
	Peer     *Alertmanager // joins its cluster; nil: waits for others to join
	Interval time.Duration // group_interval and repeat_interval: how often it looks at a group, and reminds
}

// Alertmanager is one process of Prometheus Alertmanager. Beside its peers it waits for no one: a peer sends what it has not yet heard that another has
// sent, so that both often send the same.
type Alertmanager struct {
	settings AlertmanagerSettings
	lab      *Lab
	dir      string // its configuration and memory
	address  string // of its API
	cluster  string // of its gossip
	process  *child.Process
}

// alertmanagerConfig is JSON, which is YAML. The first notification of a group goes out at once.
const alertmanagerConfig = `{"route": {"receiver": "einmal", "group_by": [%q], "group_wait": "10ms", "group_interval": %[2]q, "repeat_interval": %[2]q},
"receivers": [{"name": "einmal", "webhook_configs": [{"url": %[3]q, "http_config": {"authorization": {"credentials": %[4]q}}}]}]}
`

// Alertmanager starts one and waits until it takes alerts. The error is ErrNoAlertmanager where there is none to start.
func (l *Lab) Alertmanager(ctx context.Context, settings AlertmanagerSettings) (*Alertmanager, error) {
	a := &Alertmanager{settings: settings, lab: l, dir: l.path("alertmanager")}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		return nil, fmt.Errorf("start alertmanager: %w", err)
	}
	config := fmt.Sprintf(alertmanagerConfig, settings.GroupBy, settings.Interval.String(), settings.Receiver, settings.Token)
	if err := os.WriteFile(filepath.Join(a.dir, "config.yml"), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("start alertmanager: %w", err)
	}
	var err error
	for range portAttempts {
		if a.address, err = freeAddress(); err != nil {
			return nil, err
		}
		if a.cluster, err = freeAddress(); err != nil {
			return nil, err
		}
		if err = a.Start(ctx); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alertmanagers = append(l.alertmanagers, a)
	return a, nil
}

// Start starts the process, with what it has noted before it ended the last time, and waits until it takes alerts.
func (a *Alertmanager) Start(ctx context.Context) error {
	binary, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		return ErrNoAlertmanager
	}
	log, err := os.OpenFile(filepath.Join(a.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start alertmanager: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "--config.file="+filepath.Join(a.dir, "config.yml"), "--storage.path="+filepath.Join(a.dir, "data"),
		"--web.listen-address="+a.address, "--web.external-url=http://127.0.0.1:9093", // the same in every recording
		"--cluster.listen-address="+a.cluster, "--cluster.advertise-address="+a.cluster,
		"--cluster.peer-timeout=1ms", "--cluster.settle-timeout=100ms", "--cluster.gossip-interval=50ms")
	if a.settings.Peer != nil {
		cmd.Args = append(cmd.Args, "--cluster.peer="+a.settings.Peer.cluster)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if a.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	record.From(ctx).Place(record.Place{Address: a.address, Kind: record.Process, Name: "Alertmanager"})
	if err := awaitReady(ctx, a.process, "http://"+a.address+"/-/ready"); err != nil {
		return errors.Join(fmt.Errorf("start alertmanager: %w\n%s", err, a.Log()), a.Kill())
	}
	return nil
}

// Alert is one alert as Prometheus tells of it.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt,omitzero"` // past: it is resolved
}

// Address is where its API is, which is its name in a recording.
func (a *Alertmanager) Address() string { return a.address }

// Tell tells the process of alerts, as Prometheus does again and again.
func (a *Alertmanager) Tell(ctx context.Context, alerts ...Alert) error {
	body, err := json.Marshal(alerts)
	if err != nil {
		return fmt.Errorf("tell alertmanager: %w", err)
	}
	m := record.Message{From: "Prometheus", To: a.address, Method: http.MethodPost, Path: "/api/v2/alerts", Body: string(body), Sent: time.Now()}
	answer := Do(record.Into(ctx, nil), Call{Base: "http://" + a.address, Method: m.Method, Path: m.Path, Body: m.Body})
	record.From(ctx).Message(answered(m, answer))
	if answer.Err != nil || answer.Status != http.StatusOK {
		return fmt.Errorf("tell alertmanager: %v", answer)
	}
	return nil
}

// Kill ends the process as a crash does.
func (a *Alertmanager) Kill() error {
	if err := a.process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-a.process.Done()
	return nil
}

// Log is all that it has written.
func (a *Alertmanager) Log() string {
	text, err := os.ReadFile(filepath.Join(a.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
