package retention

const (
	ListAnswers      = listAnswers
	DropAnswers      = dropAnswers
	ListTombstones   = listTombstones
	RemoveTombstones = removeTombstones
)
