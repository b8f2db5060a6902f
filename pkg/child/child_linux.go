package child

import "syscall"

func dieWithUs(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
