const none = new Uint8Array(0)

/** An unsigned integer as the fewest big-endian bytes; 0 is none. */
export function amountBytes(amount: bigint): Uint8Array {
  if (amount === 0n) return none
  const digits = amount.toString(16)
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex')
}

/** The integer in big-endian bytes. */
export function amountOf(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}
