package tickets

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/einmal/einmal/pkg/idempotency"
)

// alert is one alert of a notification. What makes it one, and what became of it, must be right; the rest is for people.
type alert struct {
	Status       string            `json:"status"`
	Fingerprint  string            `json:"fingerprint"` // Alertmanager's hash of its labels
	StartsAt     string            `json:"startsAt"`    // when this fingerprint began to fire, this time
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	GeneratorURL string            `json:"generatorURL"`
}

const (
	firing   = "firing"
	resolved = "resolved"
)

// alertFingerprint is wider than what Alertmanager makes of labels today, 16 hexadecimal digits, and leaves no doubt about where it ends in an
// event's id.
var alertFingerprint = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// check returns which member is wrong, and how, or nothing; and makes one text of all the spellings of one time. An alert that lacks what
// identifies it is never taken for another: a constant in its place would make one incident of all of them.
func (a *alert) check() (member, wrong string) {
	at, err := time.Parse(time.RFC3339Nano, a.StartsAt)
	switch {
	case a.Status != firing && a.Status != resolved:
		return "status", "must be firing or resolved"
	case !alertFingerprint.MatchString(a.Fingerprint):
		return "fingerprint", "must be 1 to 64 letters, digits, dots, underscores and hyphens"
	case err != nil || at.IsZero():
		return "startsAt", "must be the time at which the alert began, as RFC 3339 has it"
	}
	a.StartsAt = at.UTC().Format(time.RFC3339Nano)
	return "", ""
}

// event is the source_event_id of the alert's ticket. The same labels that fire again later have a new startsAt, and are another event.
func (a alert) event() string { return a.Fingerprint + "@" + a.StartsAt }

// alertReport is what is fingerprinted of an alert: that it is said. Its annotations may say something else each time, as the value that
// is too high, and the notification is still the same.
type alertReport struct {
	Fingerprint string `json:"fingerprint"`
	StartsAt    string `json:"starts_at"`
	Status      string `json:"status"`
}

// report is the attempt, on the way of a notification, to say that the alert has come to a status.
func (a alert) report(notification idempotency.Request, operationType, status string) idempotency.Request {
	notification.Key, notification.Type = idempotency.Key("am:"+a.event()+":"+status), operationType
	notification.Command.Body = alertReport{a.Fingerprint, a.StartsAt, status}
	return notification
}

// project is the one that the alert's label names, or else the one for the rest.
func (a alert) project(label, rest string) string {
	if named := a.Labels[label]; name.MatchString(named) {
		return named
	}
	return rest
}

// ticket is the command that creates the alert's ticket. It is valid whatever the alert says: what does not fit is cut or left out, since
// nobody is there to whom it could be refused.
func (a alert) ticket(project string) *createTicket {
	event, command := a.event(), newCreateTicket()
	command.Project, command.SourceEventID = project, &event
	command.Title = "Alert " + a.Fingerprint
	for _, title := range []string{a.Labels["alertname"], a.Annotations["summary"]} {
		if line := strings.Join(strings.Fields(storable(title)), " "); line != "" {
			command.Title = firstCharacters(line, maxTitle)
		}
	}
	paragraphs := slices.DeleteFunc([]string{a.Annotations["description"], a.GeneratorURL}, func(s string) bool { return s == "" })
	command.Description = firstBytes(storable(strings.Join(paragraphs, "\n\n")), maxDescription)
	for _, label := range slices.Sorted(maps.Keys(a.Labels)) {
		if name := storable(label); name != "" && utf8.RuneCountInString(name) <= maxLabelName && len(command.Labels) < maxLabels {
			command.Labels[name] = firstCharacters(storable(a.Labels[label]), maxLabelValue)
		}
	}
	return command
}

// storable is a text without U+0000, which PostgreSQL does not keep.
func storable(s string) string { return strings.ReplaceAll(s, "\x00", "\ufffd") }

func firstCharacters(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
