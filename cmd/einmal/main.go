// Command einmal is the whole suite in one binary. Its first argument says which part of it this process is.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/einmal/einmal/services/deployments"
	"github.com/einmal/einmal/services/payments"
	"github.com/einmal/einmal/services/tickets"
)

// roles is the command line: one field a role, each in the file of its name.
type roles struct {
	Run         runCmd         `cmd:"" help:"Everything in one process on embedded SQLite; stays until SIGINT or SIGTERM."`
	Tickets     ticketsCmd     `cmd:"" help:"The tickets service."`
	Payments    paymentsCmd    `cmd:"" help:"The payments service."`
	Deployments deploymentsCmd `cmd:"" help:"The deployments service."`
	Simulator   simulatorCmd   `cmd:"" help:"The outside world that can be told to fail: a ticket desk, a payment provider and a cluster, with a ledger of their real effects."`
	Agent       agentCmd       `cmd:"" help:"A client that cannot forget: do steps, each once, with a journal."`
	Scenarios   scenariosCmd   `cmd:"" help:"Run the failure scenarios against real processes and say which held."`
	Fsck        fsckCmd        `cmd:"" help:"Check what must always be true of a service's database; exit 1 if something is not."`
	Audit       auditCmd       `cmd:"" help:"The log of what happened: verify it, export it, verify a receipt, keys."`
	Migrate     migrateCmd     `cmd:"" help:"Bring a service's database to the newest version of its schema."`
	Policy      policyCmd      `cmd:"" help:"Print the idempotency policy: what may be repeated, and what then happens."`
	Healthcheck healthcheckCmd `cmd:"" hidden:"" help:"Exit 0 if the service on EINMAL_LISTEN is ready: the health check of an image without a shell."`

	Version kong.VersionFlag `help:"Print the version and leave."`
}

// streams are where a role prints and where it logs.
type streams struct{ out, err io.Writer }

func main() {
	os.Exit(start(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// exit is how a role ends that has statuses of its own.
type exit struct {
	status int
	err    error // nil: it has said everything
}

func (e exit) Error() string { return fmt.Sprintf("exit status %d: %v", e.status, e.err) }

// start is main with its surroundings as parameters. It returns the exit status: 0, 1 when the role failed, 2 when the
// command line or a setting is wrong; the agent has its own (agentCmd). What went wrong is one line on stderr.
func start(args, environ []string, stdout, stderr io.Writer) int {
	wrong := 2
	if len(args) > 0 && args[0] == "agent" {
		wrong = usageStatus
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(stderr, nil)))
	// A second signal kills: whoever sends it has waited long enough for the first.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	left := false // --help and --version end the parse, not the process: tests call start
	parser, err := kong.New(&roles{},
		kong.Name("einmal"),
		kong.Description("A retrying client never causes a second effect: reference services that share one idempotency package.\n\n"+
			"Settings are environment variables, listed with their defaults by einmal ROLE --help."),
		kong.Vars{
			"version": version(), "tickets_database": embedded(tickets.Name), "payments_database": embedded(payments.Name),
			"deployments_database": embedded(deployments.Name), "audit_dir": auditDir,
		},
		kong.ValueFormatter(help),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { left = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{stdout, stderr}),
	)
	if err != nil {
		panic(err) // the struct above is wrong, whatever the arguments
	}
	if err := checkSettings(parser.Model, environ); err != nil {
		fmt.Fprintf(stderr, "einmal: %v\n", err)
		return wrong
	}
	role, err := parser.Parse(args)
	if left {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "einmal: %v; see %s --help\n", err, called(err))
		return wrong
	}
	status, err := 1, role.Run()
	if left := (exit{}); errors.As(err, &left) {
		status, err = left.status, left.err
		if err == nil {
			return status
		}
	}
	if err != nil {
		name, _, _ := strings.Cut(role.Command(), " <") // what its arguments are called says nothing here

		fmt.Fprintf(stderr, "einmal %s: %s\n", name, strings.Join(strings.Fields(err.Error()), " ")) // drivers break lines
		return status
	}
	return 0
}

// called is the command, or the part of one, whose help says what a wrong command line lacks.
func called(err error) string {
	name := "einmal"
	if wrong := (*kong.ParseError)(nil); errors.As(err, &wrong) {
		for _, part := range wrong.Context.Path {
			if part.Command != nil {
				name += " " + part.Command.Name
			}
		}
	}
	return name
}

// help is the help of a flag with its variable, and with its default where a placeholder stands in the flag's own line.
func help(value *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(value)
	if value.Flag != nil && value.Flag.PlaceHolder != "" && value.Default != "" {
		text = strings.TrimSuffix(text, ".") + "; default " + value.Default + "."
	}
	return text
}

// version is what the build knows of itself: the module's version, or the commit, and the Go release.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "einmal (unknown build)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v = s.Value
		}
	}
	return fmt.Sprintf("einmal %s %s", v, info.GoVersion)
}
