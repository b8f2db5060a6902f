package einmal_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// composed is what docker-compose.yml says of one service.
type composed struct {
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	ReadOnly    bool              `yaml:"read_only"`
}

// The tours hold for `make up` as well: the same addresses, on this machine only, and a desk that the service mirrors to.
func TestComposeStartsWhatTheToursShow(t *testing.T) {
	text, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]composed `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var published []string
	for name, service := range file.Services {
		for _, port := range service.Ports {
			at := strings.LastIndex(port, ":")
			address, inside := port[:max(at, 0)], port[at+1:]
			if !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("%s publishes %s to more than this machine", name, port)
			}
			if listen := service.Environment["EINMAL_LISTEN"]; listen != "0.0.0.0:"+inside {
				t.Errorf("%s publishes %s and listens on %q", name, port, listen)
			}
			published = append(published, address)
		}
		if slices.Contains([]string{"tickets", "payments", "deployments", "simulator"}, name) && (!slices.Equal(service.Command, []string{name}) || !service.ReadOnly) {
			t.Errorf("%s runs %q, with its files read-only: %v", name, service.Command, service.ReadOnly)
		}
	}
	for _, page := range tours(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(string(text), -1) {
			if !slices.Contains(published, address) {
				t.Errorf("%s shows %s, which docker-compose.yml does not publish", page, address)
			}
		}
	}
	desk, _ := strings.CutPrefix(file.Services["tickets"].Environment["EINMAL_PROVIDER_URL"], "http://")
	name, port, _ := strings.Cut(desk, ":")
	if listen := file.Services[name].Environment["EINMAL_LISTEN"]; listen != "0.0.0.0:"+port {
		t.Errorf("tickets are mirrored to %q, where %q listens on %q", desk, name, listen)
	}
}
