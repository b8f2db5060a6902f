package deployments

import (
	"fmt"
	"regexp"

	"github.com/einmal/einmal/pkg/problem"
)

// name is the rule for services and environments, as for every name that ends up in paths and lists.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const nameRule = "must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"

// The fields of the commands in this form, defaults applied, are what is fingerprinted: a change here is a new fingerprint version.

// createDeployment is the command of POST /v1/deployments. Its artifact is fingerprinted without a tag: the digest says it all.
type createDeployment struct {
	Service         string     `json:"service"`
	Environment     string     `json:"environment"`
	Artifact        string     `json:"artifact"`
	ExpectedVersion *int64     `json:"expected_version"` // of the environment; nil: any
	WhenLocked      whenLocked `json:"when_locked"`
}

// whenLocked says what becomes of a deployment that finds its environment locked.
type whenLocked string

const (
	reject whenLocked = "reject"
	queue  whenLocked = "queue"
)

// newCreateDeployment is the command with the defaults of what a body leaves out.
func newCreateDeployment() *createDeployment { return &createDeployment{WhenLocked: reject} }

// Validate returns everything that is wrong, but with the artifact: parse tells that, and under codes of its own.
func (c *createDeployment) Validate() (all []problem.Violation) {
	wrong := func(pointer, format string, args ...any) {
		all = append(all, problem.Violation{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	if !name.MatchString(c.Service) {
		wrong("/service", nameRule)
	}
	if !name.MatchString(c.Environment) {
		wrong("/environment", nameRule)
	}
	if c.Artifact == "" {
		wrong("/artifact", artifactRule)
	}
	if c.ExpectedVersion != nil && *c.ExpectedVersion < firstVersion {
		wrong("/expected_version", "must be a version that the environment has had: %d or more", firstVersion)
	}
	if c.WhenLocked != reject && c.WhenLocked != queue {
		wrong("/when_locked", "must be reject or queue")
	}
	return all
}

// parse puts the artifact into the form in which it is deployed and fingerprinted.
func (c *createDeployment) parse() (err error) {
	c.Artifact, err = parseArtifact(c.Artifact)
	return err
}

// cancelDeployment is the command of POST /v1/deployments/{id}/cancel: the path says it all.
type cancelDeployment struct{}

// Validate finds nothing wrong.
func (*cancelDeployment) Validate() []problem.Violation { return nil }

// rollbackDeployment is the command of POST /v1/deployments/{id}/rollback.
type rollbackDeployment struct {
	To *string `json:"to"` // a deployment; nil: what was live before
}

// Validate returns everything that is wrong.
func (c *rollbackDeployment) Validate() []problem.Violation {
	if c.To != nil && *c.To == "" {
		return []problem.Violation{{Pointer: "/to", Detail: "must be the id of a deployment; leave it out for the release that was live before"}}
	}
	return nil
}

// putEnvironment is the command of PUT /v1/environments/{name}.
type putEnvironment struct {
	ApprovalRequired *bool `json:"approval_required"`
}

// Validate returns everything that is wrong. Whether people are asked is no default.
func (c *putEnvironment) Validate() []problem.Violation {
	if c.ApprovalRequired == nil {
		return []problem.Violation{{Pointer: "/approval_required", Detail: "must be true or false"}}
	}
	return nil
}
