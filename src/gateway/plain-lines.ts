/**
 * Header lines that change no answer with content that is in the store, by id: no step of one reads them (`plan.ts`, `hints.ts`,
 * `isolation.ts`, `open-flow.ts`, routes/host-rules.ts). A request that has any other line is answered step by step. Whoever
 * lets a step read one of these has to take it off this list; test/gateway/repeating.test.ts asks with each of them.
 *
 * A line with values says when a browser is about to show a document, which `/raw` redirects to a host of its own: with
 * another value the answers of `/raw` are not repeated.
 */
export const plainLines: readonly string[] = [
  'accept=*/*',
  'sec-fetch-mode=cors|no-cors|same-origin',
  ...[
    'accept-charset',
    'accept-encoding',
    'accept-language',
    'cache-control',
    'cdn-loop',
    'connection',
    'cookie',
  ],
  ...[
    'device-memory',
    'dnt',
    'downlink',
    'ect',
    'forwarded',
    'from',
    'if-modified-since',
    'if-unmodified-since',
  ],
  ...[
    'keep-alive',
    'origin',
    'pragma',
    'priority',
    'referer',
    'rtt',
    'save-data',
    'sec-ch-ua',
    'sec-ch-ua-mobile',
  ],
  ...[
    'sec-ch-ua-platform',
    'sec-fetch-dest',
    'sec-fetch-site',
    'sec-fetch-user',
    'sec-gpc',
    'sec-purpose',
    'te',
  ],
  ...['traceparent', 'tracestate', 'upgrade-insecure-requests', 'user-agent', 'via', 'viewport-width'],
  ...[
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-port',
    'x-forwarded-proto',
    'x-real-ip',
    'x-requested-with',
  ],
]
