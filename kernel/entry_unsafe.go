package kernel

import _ "unsafe" // for go:linkname

// What the entry code, which is compiled into package runtime, calls and uses.

//go:linkname Start
//go:linkname Begin
//go:linkname StartCPU
//go:linkname Enter
//go:linkname Fatal
//go:linkname Interrupted
//go:linkname entries
//go:linkname clock
//go:linkname tables
//go:linkname haveXSave
//go:linkname Rung
//go:linkname Emulated
//go:linkname Held
