/**
 * Lets go of a body that nobody will read. A generator that never ran frees nothing when it is ended by `return`, so it is made
 * to take its first step. Abort its signal first, or that step may take as long as the source is silent. Never rejects.
 */
export async function cancelBody(body: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of body) break
  } catch {
    // Whatever was wrong with it, it is over.
  }
}
