// Package layout is what the archive of the Linux guest and its first process agree
// upon.
package layout

// Paths in the archive.
const (
	First   = "/init"    // where Linux looks
	Program = "/program" // what is measured
	Modules = "/modules" // in the order in which they are loaded, by name
)

// AddressVariable holds the address and prefix of the card; Linux hands it on from
// its command line.
const AddressVariable = "BENCH_ADDRESS"

// Interface is what Linux calls the card.
const Interface = "eth0"
