#!/usr/bin/env bash
# The first step of the action: gets the client's package, and stops where it is not the one that was pinned. No key is in the
# environment of this step, so that nothing that was not checked can read it.
#
# PACKAGE_VERSION: an exact version on the npm registry. PACKAGE_TARBALL: a path or an address of a tarball in its place.
# PACKAGE_INTEGRITY: sha512-... in base64, as package-lock.json and `npm view sluice-client dist.integrity` have it.
set -euo pipefail
fail() {
  echo "::error::$1"
  exit 1
}

if [ -z "${PACKAGE_INTEGRITY:-}" ]; then
  fail "the input 'integrity' is missing: npm view sluice-client@VERSION dist.integrity says it"
fi
if [ -n "${PACKAGE_TARBALL:-}" ]; then spec=$PACKAGE_TARBALL; else
  [[ "${PACKAGE_VERSION:-}" =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
    fail "the input 'version' must be an exact version, such as 1.2.3"
  spec=sluice-client@$PACKAGE_VERSION
fi
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/sluice-client.XXXXXX")
if [ -f "$spec" ]; then cp "$spec" "$folder/client.tgz"; else
  name=$(cd "$folder" && npm pack --silent --ignore-scripts "$spec")
  mv "$folder/$name" "$folder/client.tgz"
fi
found=sha512-$(openssl dgst -sha512 -binary "$folder/client.tgz" | base64 -w 0)
[ "$found" = "$PACKAGE_INTEGRITY" ] || fail "the package is another one than was pinned: its integrity is $found"
# The package needs no other one, and no script of it runs.
tar xzf "$folder/client.tgz" -C "$folder"
echo "program=$folder/package/bin/sluice-client.js" >>"$GITHUB_OUTPUT"
