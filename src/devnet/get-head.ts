import { get, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'

/** Requests `url` of this machine, reads the body to its end and drops it. Not `fetch`, which takes longer to load. */
export function getHead(
  url: string,
  headers: OutgoingHttpHeaders = {},
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, ...(signal === undefined ? {} : { signal }) }, (answer) => {
      answer
        .on('error', reject)
        .on('end', () => resolve(answer))
        .resume()
    })
    request.on('error', reject)
  })
}
