#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/2181
printf ruok >&3
[ "$(timeout 5 head -c 4 <&3)" = imok ]
