// Package report makes one HTML file of what a run of scenarios has recorded: a summary, and for each scenario a sequence diagram, what was injected
// where, what the simulators' ledgers say, and the rows that were left.
//
// The file is whole: it asks for nothing over the network, works without JavaScript, and follows the reader's choice of light or dark. Everything in
// it was recorded (see e2e/record) or read after the scenario; where it is not known who sent something, the diagram says so. All texts come from
// outside and are escaped by html/template.
//
//	report.go      Run → the file; page.html, page.css and drawing.html are its templates
//	section.go     one scenario → what the page says of it
//	tell.go        a recording → steps in order of time; marks.go what happened at places, outside.go what services and simulators said to each other
//	lives.go       who lived when, and so who can have sent something; reuse.go which processes share a lifeline
//	fold.go        many steps → the ones worth drawing
//	layout.go      steps → coordinates; columns.go from left to right
//	injection.go   what was injected where · ledger.go what the simulators say · table.go the rows
package report
