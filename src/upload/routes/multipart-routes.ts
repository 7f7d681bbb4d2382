import type { Clients } from '../../admission/clients.js'
import type { Multipart } from '../parts/multipart.js'
import type { UploadRoute } from '../requests/upload-route.js'
import { uploaderOf } from '../requests/uploader.js'

/** Items in parts. Those with fixed words at the end stand before the one that takes an offset there. */
export function multipartRoutes(multipart: Multipart, clients: Clients): UploadRoute[] {
  return [
    {
      path: '/chunks/{token}/-1/-1',
      summary: 'Begins an upload in parts',
      statuses: [200, 400, 402, 409, 413, 429],
      query: ['chunkSize', 'totalBytes', 'address', 'signatureType'],
      answer: (request) => {
        // It would begin one that nobody can know of.
        if (request.method === 'HEAD') return { status: 405, text: 'Method Not Allowed' }
        return multipart.create(request, uploaderOf(request, clients, undefined).address)
      },
    },
    {
      path: '/chunks/{token}/{uploadId}/-1',
      summary: 'Which parts of an upload are here',
      statuses: [200, 404],
      answer: (_, { uploadId = '' }) => multipart.info(uploadId),
    },
    {
      path: '/chunks/{token}/{uploadId}/status',
      summary: 'How far an upload in parts has come, with the receipt in the end',
      statuses: [200, 404],
      answer: (_, { uploadId = '' }) => multipart.status(uploadId),
    },
    ...(['-1', 'finalize'] as const).map((word): UploadRoute => {
      const waits = word === '-1'
      return {
        method: 'POST',
        path: `/chunks/{token}/{uploadId}/${word}`,
        summary: waits
          ? 'Puts the parts together, and answers with the receipt'
          : 'Has the parts put together; its state tells how far that is',
        statuses: waits ? [200, 400, 402, 403, 404, 409, 413] : [200, 202, 400, 402, 403, 404, 409, 413],
        answer: (request, { token, uploadId = '' }) =>
          multipart.finalize(uploadId, uploaderOf(request, clients, token), waits),
      }
    }),
    {
      method: 'POST',
      path: '/chunks/{token}/{uploadId}/{offset}',
      summary: 'Takes one part; one that was there is replaced',
      statuses: [200, 400, 404, 408, 409, 413],
      answer: (request, { uploadId = '', offset = '' }) => multipart.chunk(request, uploadId, offset),
    },
  ]
}
