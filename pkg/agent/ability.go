package agent

// Ability is what a target can do for a caller that is not sure.
type Ability string

const (
	// Operations: the target keeps einmal's contract (docs/contract.md): it remembers keys, and GET /v1/operations says what became of one.
	Operations Ability = "operations"

	// Keys: the target remembers keys and can't be asked. Sending the same request once more is the only question there is. A target whose commands
	// carry a key of their own (PUT to a name that the caller chose) is one of these.
	Keys Ability = "keys"

	// None: sending twice may do it twice, so nothing is sent again and a person is asked.
	None Ability = "none"
)

// possible is what becomes of an action at a target that can do less than the contract asks for.
var possible = map[Ability]map[Action]Action{
	Operations: {Done: Done, Stop: Stop, RetrySameKey: RetrySameKey, LookUp: LookUp, Poll: Poll, HandOver: HandOver},
	Keys:       {Done: Done, Stop: Stop, RetrySameKey: RetrySameKey, LookUp: RetrySameKey, Poll: HandOver, HandOver: HandOver},
	None:       {Done: Done, Stop: Stop, RetrySameKey: HandOver, LookUp: HandOver, Poll: HandOver, HandOver: HandOver},
}

// Retry says whether an entry's request may be sent more than once.
type Retry string

const (
	SameOperation Retry = "same_operation" // again under the same key, as the contract says
	Never         Retry = "never"          // once; after that it is only asked about
)

// allowed is the same for what the step has declared.
var allowed = map[Retry]map[Action]Action{
	SameOperation: {Done: Done, Stop: Stop, RetrySameKey: RetrySameKey, LookUp: LookUp, Poll: Poll, HandOver: HandOver},
	Never:         {Done: Done, Stop: Stop, RetrySameKey: HandOver, LookUp: LookUp, Poll: Poll, HandOver: HandOver},
}
