package tickets

import (
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/server"
)

// Config is every setting of the service.
type Config struct {
	server.Config `set:"listen=127.0.0.1:8081"`
	catalogue.Settings

	// The embedded database by default, so that one command runs everything.
	DatabaseURL string `env:"EINMAL_DATABASE_URL" default:"${tickets_database}" placeholder:"URL" help:"sqlite:PATH or postgres://…"`

	// Off where the role that the service connects as owns no tables; then run einmal migrate as one that does.
	Migrate bool `env:"EINMAL_MIGRATE" default:"true" negatable:"" help:"Bring the database to the newest version at the start."`
}
