# A hundred children one after the other, each with a hundred children left behind.
	.globl _start
_start:	mov $100, %r12d
parent:	mov $56, %eax		# clone
	mov $17, %edi		# SIGCHLD
	xor %esi, %esi
	syscall
	mov $100, %ebx
	test %eax, %eax
	jz orphan		# in the child
	mov %eax, %edi
	mov $61, %eax		# wait4
	xor %esi, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	syscall
	dec %r12d
	jnz parent
	jmp exit
orphan:	mov $56, %eax		# clone
	mov $0x4111, %edi	# CLONE_VM|CLONE_VFORK|SIGCHLD
	xor %esi, %esi
	syscall
	test %eax, %eax
	jz exit			# in the child
	dec %ebx
	jnz orphan
exit:	mov $231, %eax		# exit_group
	xor %edi, %edi
	syscall
