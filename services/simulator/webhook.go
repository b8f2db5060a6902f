package simulator

import (
	"errors"
	"net/url"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
)

// Webhook is where a target sends its events, and what it signs them with.
type Webhook struct {
	Target string `json:"target" gorm:"primaryKey"`
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// TableName is where webhooks are.
func (Webhook) TableName() string { return "webhook_endpoints" }

// decodeWebhook reads where a target is to send its events. The error is a sentence.
func decodeWebhook(body []byte) (Webhook, error) {
	var w Webhook
	if err := decode(body, &w, "target", "url", "secret"); err != nil {
		return w, err
	}
	target, err := targetNamed(w.Target)
	if err != nil {
		return w, err
	}
	if !target.sendsEvents() {
		return w, errors.New("this target sends no events")
	}
	if !isHTTP(w.URL) {
		return w, errors.New("url must be an http or https URL with a host")
	}
	if w.Secret == "" {
		return w, errors.New("secret must not be empty: whoever receives an event has to know who sent it")
	}
	return w, nil
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// set replaces the webhook of the target. Events that were not accepted yet go to the new one.
func (w Webhook) set(tx database.Tx) error {
	return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "target"}}, UpdateAll: true}).Create(&w).Error
}

// webhookOf is where the target sends its events: where it was told to, or else where it is configured to. A webhook without
// a URL: nowhere.
func (h *webhooks) webhookOf(read *gorm.DB, target string) (Webhook, error) {
	var told []Webhook
	if err := read.Where("target = ?", target).Limit(1).Find(&told).Error; err != nil {
		return Webhook{}, err
	}
	if len(told) == 0 {
		return h.configured[target], nil
	}
	return told[0], nil
}
