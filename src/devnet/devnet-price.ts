/** Winston per byte on today's network, roughly. */
export const usualWinstonPerByte = 460n

/** A stored transaction costs its header too. */
const headerBytes = 3_210n

/** Extra price of a transfer to a new wallet, because it makes the wallet list longer. */
const newWalletWinston = 1_000_000n

/** The least reward for a transaction with `sizeBytes` of data. `newTarget`: it sends to a wallet that does not exist yet. */
export function priceOf(sizeBytes: number, newTarget: boolean, winstonPerByte: bigint): bigint {
  return (BigInt(sizeBytes) + headerBytes) * winstonPerByte + (newTarget ? newWalletWinston : 0n)
}
