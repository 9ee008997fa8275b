# Sleeps forever, without a loader: no system call but pause is needed.
	.globl _start
_start:	mov $34, %eax		# pause
	syscall
	jmp _start
