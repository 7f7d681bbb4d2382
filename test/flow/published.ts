import type { PublicationDocument } from '../../src/bands/publication.js'

/** Looks ten times a second until there is something. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined>,
  triesMax = 2000,
): Promise<T> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`in vain: ${what}`)
}

/** What a gateway publishes, below the path of its vocabulary; undefined where it publishes nothing yet. */
export async function document(
  gateway: string,
  pathPrefix = '/gateway',
): Promise<PublicationDocument | undefined> {
  const answer = await fetch(`${gateway}${pathPrefix}/indexes`)
  return answer.status === 200 ? ((await answer.json()) as PublicationDocument) : undefined
}
