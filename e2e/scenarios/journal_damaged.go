package scenarios

import (
	"bytes"
	"os"
	"strings"

	"github.com/einmal/einmal/e2e/faults"
)

var journalTorn = Scenario{
	Name:    "journal_torn",
	Promise: "A journal whose last record is torn is cut there and told so; what was sent is settled under its key, and later records never run into it.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			opens, further := e.opens("open"), e.opens("further")
			e.EndsAll("the first agent", e.Do(opens), 1)
			whole, err := os.ReadFile(e.journal)
			e.must(err)
			last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
			const step = 97 // the reader is tried at every byte in its own tests
			cuts := 0
			for size := last + 1; size < len(whole); size += step {
				e.Damage(func([]byte) []byte { return whole[:size] })
				result := e.Do(opens, further)
				e.EndsAll("the agent with a torn journal", result, 2)
				e.Check(result.CutBytes == size-last && strings.Contains(result.Log, "cut off"), "%d bytes were cut off, want %d: %s", result.CutBytes, size-last, result.Log)
				again := e.Do(opens, further)
				e.EndsAll("the agent after it", again, 2)
				e.Check(again.CutBytes == 0, "something was cut off twice")
				entries := e.Entries()
				e.Check(len(entries) == 2, "%d entries, want 2", len(entries))
				for _, entry := range entries {
					e.OneTicket("after a torn record", entry)
				}
				cuts++
			}
			e.Notef("the last record was torn at %d places", cuts)
			return 1 + cuts // further is new to each of these journals
		})
	},
}

var journalNulTail = Scenario{
	Name:    "journal_nul_tail",
	Promise: "Zeros at the end of a journal, as a power failure leaves them, are cut off; damage in its middle stops the agent and changes nothing.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachWay(s.Serve(""), func(e *Errand) int {
			opens := e.opens("open")
			e.proxy.Next(faults.HoldRequest)
			first := e.Start(opens)
			e.AwaitHeld()
			e.KillAgent(first)
			e.proxy.Deliver()
			key := e.Entry().Key
			e.Damage(func(journal []byte) []byte { return append(journal, make([]byte, 4096)...) })
			result := e.Do(opens)
			e.EndsAll("the agent with zeros in its journal", result, 1)
			e.Check(result.CutBytes == 4096, "%d bytes were cut off, want 4096", result.CutBytes)
			e.Check(e.Entry().Key == key, "the key has changed")
			e.OneTicket("after the zeros", e.Entry())

			var damaged []byte
			e.Damage(func(journal []byte) []byte {
				damaged = bytes.Replace(journal, []byte(key), bytes.Repeat([]byte{0}, len(key)), 1)
				return damaged
			})
			refused := e.Do(opens, e.opens("further"))
			e.Check(refused.Status == 4 && refused.Error == "journal_damaged" && strings.Contains(refused.Log, e.journal), "a damaged journal: exit status %d, %q, %s", refused.Status, refused.Error, refused.Log)
			left, err := os.ReadFile(e.journal)
			e.must(err)
			e.Check(bytes.Equal(left, damaged), "a damaged journal was changed")
			return 1
		})
	},
}
