package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/services/simulator"
)

var deskAnswers500AfterEffect = Scenario{
	Name:    "desk_answers_500_after_effect",
	Promise: "An answer of 5xx, or a 401 or 403 that is not in the desk's own words, is no proof that nothing happened: the desk is asked, and what it did is found and not done again.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachAbility(everyAbilityAndLie, patient, func(p *Part) (effects int) {
			replica := p.Replica(p.desk.URL())
			for _, status := range []int{
				http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusForbidden,
			} {
				p.desk.NextSendAnswered(simulator.After, status, 1)
				effects += p.Ends(replica, p.Mirror(replica), Happened)
			}
			return effects
		})
	},
}
