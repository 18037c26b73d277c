#include "textflag.h"

TEXT ·illegal(SB),NOSPLIT,$0-0
	UNDEF
	RET
