/**
 * Content of strangers may hold scripts. On an origin of its own (the sandbox host of its id, a name's host) they reach only that
 * content. Elsewhere the origin is shared with this gateway's answers and all other content, so a header line gives each document
 * an opaque origin. Its scripts run, but without storage, cookies and service workers. They read from other addresses only what
 * every page on the web may read. `allow-same-origin` must never be added, because it would undo this. The operator chose the
 * content of the apex for the root host, so it is sent without the sandbox.
 */
const sandboxLines =
  '\r\nContent-Security-Policy: sandbox allow-scripts allow-forms allow-popups allow-downloads'

/**
 * What the origin of an answer with content means for its header lines. `varies`: the request headers that the steps decide by
 * there, as a line with CRLF in front; '' where there are none. One object for each case, so that heads are kept by identity.
 */
export interface Origin {
  readonly isShared: boolean
  readonly varies: string
  readonly sandboxed: string
}

function originOf(isShared: boolean, headers: string): Origin {
  const varies = headers === '' ? '' : `\r\nVary: ${headers}`
  return { isShared, varies, sandboxed: isShared ? sandboxLines + varies : varies }
}

/**
 * `own`: nothing else has this origin. `shared`: scripts of service workers are refused (`refusesWorker`). `redirecting`: shared,
 * and documents are redirected (`isNavigation`). `referred`: an origin of its own, where pages of it get what others do not.
 */
export const origins = {
  own: originOf(false, ''),
  referred: originOf(false, 'Referer'),
  shared: originOf(true, 'Service-Worker'),
  redirecting: originOf(true, 'Sec-Fetch-Mode, Accept, Service-Worker'),
} as const
