/mnt/h -nconnect=32 nas1.example.com:/h
/mnt/i -nconnect=many nas1.example.com:/i
