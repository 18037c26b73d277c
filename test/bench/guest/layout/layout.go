// Package layout contains names that the archive of the Linux guest and its first process share.
package layout

// Paths in the archive with the guest's first files.
const (
	First   = "/init"    // where Linux looks for the first process
	Program = "/program" // the program to measure
	Modules = "/modules" // kernel modules, loaded in the order of their names
)

// AddressVariable is the environment variable with the address and prefix of the card. Linux passes it
// on from its command line.
const AddressVariable = "BENCH_ADDRESS"

// Interface is the name of the card's interface in Linux.
const Interface = "eth0"
