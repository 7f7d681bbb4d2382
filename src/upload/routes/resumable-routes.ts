import type { Request } from '../../http/exchange.js'
import type { HtmlPage } from '../../http/page.js'
import { htmlType, takesPages } from '../../http/small-answer.js'
import type { ResumableUploads } from '../parts/resumable.js'
import { jsonAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { UploadRoute } from '../requests/upload-route.js'

export interface UploadPlaceParts {
  readonly resumable: ResumableUploads
  /** What browsers see at `/upload`. */
  readonly page: HtmlPage
  /** A script of the page; `known`: what the client has of it. */
  readonly script: (name: string, known: string | undefined) => UploadAnswer
}

/** `/upload`: a page for people, and for programs uploads that go on where they were interrupted. */
export function resumableRoutes({ resumable, page, script }: UploadPlaceParts): UploadRoute[] {
  return [
    {
      path: '/upload',
      summary: 'Browsers: a page to upload from. Programs: how uploads can be resumed',
      statuses: [200],
      answer: (request) => {
        const varying = '\r\nVary: Accept'
        if (!takesPages(request)) return jsonAnswer(200, resumable.about(), varying)
        return { status: 200, text: page.html, type: htmlType, lines: page.lines + varying }
      },
    },
    {
      path: '/page/{script}',
      summary: 'A script of the page',
      statuses: [200, 304, 404],
      type: 'text/javascript',
      answer: (request, { script: name = '' }) => script(name, request.header('if-none-match')),
    },
    {
      method: 'POST',
      path: '/upload',
      summary: 'Begins an upload that can be resumed (Upload-Complete), or takes a whole item',
      statuses: [200, 201, 202, 400, 402, 403, 408, 409, 413, 429],
      optionLines: resumable.optionLines,
      answer: (request, _, reply) => resumable.create(request, reply, below(request)),
    },
    {
      path: '/upload/{uploadId}',
      summary:
        'How far an upload is, with the receipt in the end; HEAD: in header lines, to go on from there',
      statuses: [200, 204, 404],
      answer: (request, { uploadId = '' }) => resumable.state(request, uploadId),
    },
    {
      method: 'PATCH',
      path: '/upload/{uploadId}',
      summary: 'Appends bytes; the answer to the last ones is the receipt',
      statuses: [200, 204, 400, 402, 403, 404, 408, 409, 413, 415, 429],
      optionLines: resumable.optionLines,
      answer: (request, { uploadId = '' }, reply) => resumable.append(request, reply, uploadId),
    },
    {
      method: 'DELETE',
      path: '/upload/{uploadId}',
      summary: 'Gives an upload up',
      statuses: [204, 404, 409],
      answer: (_, { uploadId = '' }) => resumable.cancel(uploadId),
    },
  ]
}

/** The path of uploads that this request begins, with or without the version of its own path. */
function below({ path }: Request): string {
  return /^\/v1\//i.test(path) ? '/v1/upload' : '/upload'
}
