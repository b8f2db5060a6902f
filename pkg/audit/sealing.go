package audit

import (
	"errors"
	"time"
)

// Sealing is what whoever runs a service decides about its proof. The zero value seals nothing and believes every database.
type Sealing struct {
	// Not in the database, and best not on its machine: who rewrites the one is found by the other.
	AuditDir string `env:"EINMAL_AUDIT_DIR" default:"${audit_dir}" placeholder:"DIR" help:"Where the key that checkpoints are signed with, the public keys that are believed, and the last checkpoint are."`

	// For keys that come from elsewhere, as a mounted secret does.
	KeyFile string `env:"EINMAL_AUDIT_KEY_FILE" placeholder:"FILE" help:"The private key, if it is not audit.key in EINMAL_AUDIT_DIR."`

	// What a thief of the database can take back unseen is what is not sealed yet. A batch costs one signature and one commit, however many
	// events are in it, so a second is cheap.
	SealEvery time.Duration `env:"EINMAL_SEAL_EVERY" default:"1s" help:"How often events are sealed; 0: not by this process, another does it."`
}

func (s Sealing) files(service string) (Files, error) {
	switch {
	case s.AuditDir == "" && s.SealEvery > 0:
		return Files{}, errors.New("EINMAL_AUDIT_DIR is empty: name a directory outside the database, for the key and the last checkpoint")
	case s.SealEvery < 0:
		return Files{}, errors.New("EINMAL_SEAL_EVERY cannot be negative; 0 leaves sealing to another process")
	}
	return Files{Dir: s.AuditDir, Service: service, KeyFile: s.KeyFile}, nil
}
