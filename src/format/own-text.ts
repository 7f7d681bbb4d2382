/**
 * The same text in memory of its own, for what is kept: V8 makes a slice of 13 characters or more refer to the whole text that it
 * was cut from, which then lives as long as the slice. `text` has Latin-1 characters only, as heads of requests have.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
