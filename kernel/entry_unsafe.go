package kernel

import _ "unsafe" // for go:linkname

// Go names of symbols that the entry code defines. The entry code is compiled into package runtime.

//go:linkname Start
//go:linkname Begin
//go:linkname StartCPU
//go:linkname Enter
//go:linkname Fatal
//go:linkname Interrupted
//go:linkname entries
//go:linkname machineCore
//go:linkname haveXSave
//go:linkname haveSMAP
//go:linkname userVectors
//go:linkname Rung
//go:linkname Held
//go:linkname Debt
