/** The ledger's account that all money of x402 comes from. */
export const usdcSource = 'source:x402'

/** Name of the transfer by which a settled payment came in. */
export const usdcTransferId = (payment: string): string => `x402:${payment}`
