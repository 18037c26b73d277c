package runtime

import _ "unsafe" // for go:linkname

// loamCrash is called before an unrecovered panic ends the program; nil: nothing is called. It is set before
// the program runs.
//
//go:linkname loamCrash
var loamCrash func()

// preprintpanics is called for an unrecovered panic, before anything is printed, while ordinary code still
// runs on the goroutine: it calls the Error and String methods of the values.
func preprintpanics(p *_panic) {
	linuxPreprintpanics(p)
	if loamCrash != nil && loamOrdinary() {
		bubble := loamLeaveBubble()
		loamCrash()
		loamEnterBubble(bubble)
	}
}
